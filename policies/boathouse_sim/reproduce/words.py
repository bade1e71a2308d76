"""Numbers in sentences."""


def per_cent(share: float) -> str:
    """A share of 1."""
    return f"{100 * share:.0f} %"


def signed(share: float) -> str:
    """A change, as a share of 1."""
    return f"{100 * share:+.0f} %"
