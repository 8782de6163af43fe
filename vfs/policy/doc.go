// Package policy reads and evaluates policy documents in Amazon's language: those
// of buckets, of identities, of sessions, permission boundaries, and who may assume
// a role. It knows neither the namespace nor a protocol: what a request is about
// comes in a Request, and what condition keys are worth from its Values.
//
//	text ─ Parse ─┬ json.go       members in order, bounded, none twice
//	              ├ parse.go      statements; every fault in Amazon's words
//	              ├ principal.go  who is named
//	              ├ pattern.go    wildcards and variables
//	              ├ condition.go  operators, with operands converted once
//	              ├ outline.go    which statements can be about a request
//	              └ pack.go       few pieces of memory for the collector to look at
//	Document.Decide(Request) ─ Deny, Allow, or neither       document.go, request.go, evaluate.go
//	Partial.Decide           ─ the same, of long documents of which little is in memory    partial.go
//	Document.Public                                          public.go
//
// # Invariants
//
// A Document is never changed after Parse and is safe for concurrent use, as is a Partial.
// To decide allocates nothing.
//
// A Partial decides as its Document does, or says which statements it lacks: an outline finds
// too many statements, never too few.
//
// An explicit deny wins over every allow, whatever the order of statements. What a
// document says in a way that this package does not know is an error of Parse,
// never a statement that is passed over.
//
// Principals that can be given to somebody else later, such as the name of a user,
// are replaced by IDs in the stored text (Rewrite), so that no right passes with a
// name.
//
// Sources: "IAM JSON policy elements reference", "Grammar of the IAM JSON policy
// language" and "Policy evaluation logic" of the IAM user guide; "Policies and
// permissions in Amazon S3" and "The meaning of public" of the S3 user guide.
package policy
