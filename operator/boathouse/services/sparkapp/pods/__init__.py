"""An application's pods as they are."""
