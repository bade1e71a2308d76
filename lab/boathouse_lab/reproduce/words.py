"""Numbers in sentences."""


def per_cent(share: float) -> str:
    """Format a share of 1 in per cent."""
    return f"{100 * share:.0f} %"


def signed(share: float) -> str:
    """Format a change, as a share of 1, with its sign."""
    return f"{100 * share:+.0f} %"
