// Package rest is the REST door: a path is an object, and the methods of HTTP
// are what one can do to it. There is nothing else to learn.
//
//	PUT, POST /a/b/c    store the body; parents appear
//	GET, HEAD /a/b/c    the bytes, ranges and conditions included
//	DELETE    /a/b/c    remove it
//	GET       /a/b/     list the directory, as JSON or (for browsers) HTML
//	PUT       /a/b/     make a directory that stays when it is empty
//	DELETE    /a/b/     remove an empty directory
//	OPTIONS   /a/b/c    what is allowed
//
// The path is the percent-decoded path of the URL, byte for byte: nothing is
// cleaned, "//", "." and ".." are names like any other, and "%2F" is a slash.
//
// # Headers that are kept
//
// Content-Type, Cache-Control, Content-Disposition, Content-Encoding,
// Content-Language and Expires come back as they were sent. X-Meta-NAME is
// user metadata, the extended attribute user.NAME and S3's x-amz-meta-NAME.
// What a browser would run is sent as an attachment, and in a sandbox, unless
// ActiveContent is set (browser.go).
//
// # Integrity
//
// Content-MD5, Content-Digest and Repr-Digest (RFC 9530; md5, sha, sha-256,
// sha-512) and Digest (RFC 3230) are verified before anything is published.
//
// # Who may
//
//	request ── guard ── authenticate ── slot ── handler ── vfs
//	           (cross-  (token, basic,  (fair              (decides what the
//	            origin)  the kernel)     .Pool)             subject may do)
//
// With tokens configured, a bearer token may do everything. With users
// switched on, basic credentials (access key and secret, or user name and
// secret) act as that user, with the rights that S3 would give: administrators
// may do everything, others what they own and what was granted to them, and
// they may make buckets. Only administrators reach what lies outside of
// buckets. With neither the door is open, on loopback or at a Unix socket
// alone: the kernel reports whose program asks (package peer), which may do what
// that user may through a mount; root, and the user who runs the server, may
// do everything. Whom the kernel does not know gets 401. An open door is for
// hosts that cannot be a rebound name, and never for a cross-origin write of a
// browser.
package rest
