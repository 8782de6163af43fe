// Package iam is the door of the IAM and STS APIs: the AWS query protocol, on the port
// of the S3 door, over vfs/iam and vfs/users.
//
//	httpapi.Frame ─ Server
//	   server.go      which requests are its own; the others go on to the S3 door
//	   auth.go        signature → user or session; then the body, which is signed
//	   operations.go  Action → handler: users.go keys.go groups.go roles.go held.go
//	                  policies.go providers.go sts.go
//	   oidc           web identities: tokens of OpenID Connect providers
//	   answer.go      result → XML, pages
//	   errors.go      every error → code, status and message
//
// # Invariants
//
// A request is this door's if it is a POST of / whose signature is for the service iam
// or sts: S3 has none such. So is an unsigned one without a query whose body is a form of
// the query protocol; it may bring a web identity and nothing else. Nothing of a body is
// read for an access key that is not known, and never more than maxBody, or
// maxAnonymousBody of what is not signed; nothing is done before its signature was found
// right. Requests that nobody signed have places of their own (maxStrangers), and
// strangerTime to come. So long have signed ones, too, which a stranger may have made up,
// unless their address proved to have the access key; forgeries for one key leave room
// for the others.
//
// Who may do what is decided in vfs, in the transaction that acts.
//
// Sources: "AWS Identity and Access Management API Reference" (2010-05-08), "AWS
// Security Token Service API Reference" (2011-06-15).
package iam
