"""The error which the command prints without a traceback: a mistake that the user can correct."""


class MistakeError(ValueError):
    """The request cannot be met. The text says what is wrong and what is allowed."""
