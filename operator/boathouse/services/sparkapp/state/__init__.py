"""What is known of an application between reconciles."""
