// Package s3 is the S3 door: Amazon's S3 REST API over vfs.
//
//	httpapi.Frame ─ Server.ServeHTTP
//	   host.go      bucket from the Host header, key from the raw path
//	   cors.go      what pages of other origins may see
//	   router.go    method, level and sub-resource → operation (or 501 by name)
//	   auth.go      signature → identity, vfs.Subject; early answer of its rights
//	   server.go    a slot, by user or address (fair.Pool)
//	   operation    operations.go: buckets.go list.go get.go put.go copy.go delete.go
//	                multipart.go listuploads.go post.go acl_ops.go tagging.go attributes.go bucketpolicy.go
//	   conditionkeys.go, policyactions.go   what policies go by
//	   payload.go   body: aws-chunked, digests, checksums, idle limit
//	   errors.go    every error → S3's code, status and XML
//
// # Invariants
//
// A request runs one operation of the table in operations.go. A sub-resource that
// is not implemented never falls through to the base operation, and one that is not
// known only to one that reads.
//
// Nothing is held for a request, and nothing of its body is read, before it is
// authenticated, its bucket exists and its operation is allowed. A form, which
// is signed in its body, reads its fields under a small budget of its own.
//
// No byte of an object is published before length, digests, chunk signatures
// and checksums were found right: all are checked in PutOptions.Finish.
//
// Keys are byte strings, taken from the path decoded once, never cleaned.
//
// Rights are decided in vfs, for the subject that the context carries
// (request.become): before a body is taken (authorize) and again in the snapshot
// or transaction in which the operation acts. Each row of operations.go names the
// action; a request is anonymous until it is known who the caller is.
//
// Memory per request is a constant: the buffers of httpapi.Send and sigv4,
// and XML bodies up to the limits in limits.go.
package s3
