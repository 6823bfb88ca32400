"""Complete programs that use ThunderAgent. They are not part of the wheel."""
