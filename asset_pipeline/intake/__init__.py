"""May it come in? Inbox keys, settling, admission: the only room that reads what a caller wrote."""
