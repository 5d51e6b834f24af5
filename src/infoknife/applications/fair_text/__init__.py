"""Texts whose features tell a label and say nothing about a private attribute (section 4.2)."""
