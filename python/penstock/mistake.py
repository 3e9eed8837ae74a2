"""The error which the command prints without a traceback: a mistake that the user can correct."""


class MistakeError(ValueError):
    """The request cannot be met. The text says what is wrong and what is allowed."""


# Packages that few verbs need, and the extra of Penstock's package which installs each.
EXTRAS = {"pandas": "frames", "scipy": "fit", "distributed": "dask", "gymnasium": "gym"}


def lacking(package: str, user: str) -> MistakeError:
    """Returns the error of `user`, a verb or a method, that needs a package which is not installed."""
    return MistakeError(f"{user} needs the package {package}: `pip install 'penstock[{EXTRAS[package]}]'`")
