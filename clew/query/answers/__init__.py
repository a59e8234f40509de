"""Answers: a question is routed with a stated reason, and answered with statements that stand in passages, word for word."""
