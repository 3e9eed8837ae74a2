"""What a person can put right."""


class MistakeError(ValueError):
    """Something asked for cannot be; the text says what and what is allowed. The command shows it without traceback."""
