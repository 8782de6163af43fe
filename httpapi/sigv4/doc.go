// Package sigv4 checks S3 request signatures: Signature Version 4 in headers,
// in presigned URLs, in browser forms and in streamed chunks, and Version 2 as far
// as it is accepted (Config.V2). It knows no users: the caller finds the secret.
//
//	Parse(request) ── Signature ── caller finds the secret of AccessKey ── Verify
//	                      └────── Body: the payload, decoded and checked as it streams
//
// # Invariants
//
// Nothing is trusted before Verify returned nil. A Body returns io.EOF only
// after its length, digest, chunk signatures and trailer signature were found
// right; a caller that publishes at io.EOF publishes only what was signed.
//
// What a presigned URL states as headers is worked out once (Signature.Stated),
// for the string to sign and for who acts on it; a query that can be read in two
// ways is refused.
//
// All comparisons of secrets take constant time. Memory per request is one
// pooled buffer of chunkBufferBytes, whatever the size of chunks.
//
// Sources: "Authenticating Requests (AWS Signature Version 4)" and "Signing
// and Authenticating REST Requests (AWS Signature Version 2)" of the Amazon S3
// API reference.
package sigv4
