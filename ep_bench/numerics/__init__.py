"""Closed forms and compiled routines that several methods share. Functions take and return arrays."""
