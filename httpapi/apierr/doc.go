// Package apierr is how the JSON doors (REST and admin) report errors: one
// table from the sentinels of package vfs to a status and a stable word, and
// one body.
//
//	{"error": {"code": "not_found", "message": "no such key: a/b", "request": "4F…"}}
//
// A client that asks for text/plain or text/html gets the message as a line
// of text. Faults of the server (5xx) say what kind they are, never their
// details: those are in the log, under the request's ID.
package apierr
