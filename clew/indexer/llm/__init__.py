"""Language models: asked through any OpenAI-compatible endpoint, with a budget, a cache and replies of a given shape."""
