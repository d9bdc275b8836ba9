"""Figures: panels with axes and marks, drawn as SVG or HTML without a plotting library."""
