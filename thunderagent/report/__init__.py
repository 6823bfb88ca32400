"""``thunderagent report``: from what was measured of a pool to one page that can be attached to an incident.

From the source to the page, where all but the asking are pure functions::

    prometheus.py, samplefile.py         ask the source
    fromprometheus.py, fromsamples.py    what it says, as a record.Record: the same whatever the source
    figures.py, charts.py                what the page is to show, as values
    drawing.py, tables.py, page.py       SVG and HTML

Page and charts are trees of :mod:`xml.etree.ElementTree`, so whatever a label or an error holds is escaped when the tree is
written, and nothing can be forgotten. They are drawn here rather than by a library: the wheel must not need Matplotlib (which
the example's reports have, as an extra of theirs), pygal writes its colours and its script into each drawing, leather knows no
stacked columns. What is left is a path and some rectangles, stretched to the width of the screen beside labels that are text of
the page; so one drawing is right on a telephone, on a wide screen, in light and in dark.
"""
