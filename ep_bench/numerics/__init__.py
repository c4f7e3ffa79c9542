"""Arrays in, arrays out: closed forms and the compiled routines that several methods share."""
