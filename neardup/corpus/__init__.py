"""Bytes and rows in, text out."""
