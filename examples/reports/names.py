"""The task types of this example, as the planner writes them and the router routes them."""

IMPORT = "report.import"
REPORT = "report.page"
INDEX = "report.index"
