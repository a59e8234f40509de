"""The graph: entities, what is claimed of them, what they form together. Built here, answered from in `clew.query`."""
