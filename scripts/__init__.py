"""Programs for those who work on ThunderAgent; none of them is in the wheel."""
