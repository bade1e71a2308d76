"""The neutral choice for each extension point: what a profile has where it names nothing."""

from boathouse_policies.framework.questions import (
    IDEAL_SIZE,
    MINIMUM_TOGETHER,
    NO_PATIENCE,
    NO_PREFERENCE,
    NO_RESERVE,
    SUBMISSION,
)

__all__ = ["IDEAL_SIZE", "MINIMUM_TOGETHER", "NO_PATIENCE", "NO_PREFERENCE", "NO_RESERVE", "SUBMISSION"]
