"""An application as the scheduler sees it."""
