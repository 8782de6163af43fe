// Package iam holds what identities may do: groups of users, roles, policies with and
// without a name of their own, permission boundaries, and sessions.
//
//	admin door, IAM door ─→ Directory ─┬─ groups.go managed.go roles.go providers.go
//	                                   ├─ holder.go inline.go attach.go  what a user, group or role holds
//	                                   ├─ guards.go: who may change users
//	                                   └─ stored.go: records (internal/record), users (vfs/users)
//	judge of vfs ─→ Directory.SetOf ─→ Set.Decide                 sets.go cache.go set.go
//	sts ─→ FS.AssumeRole ─→ Directory.Assume ─→ session, sealed   assume.go session.go token.go
//	doors ─→ Directory.Credential ─→ user, secret, session        credential.go
//
// # Invariants
//
// Each change asks in its own transaction whether the caller may make it (Ask), and
// replaces the store's revision. A Set that was read at a revision is that of every
// snapshot of the same revision, so that rights cost one read where no policy of an
// identity changed.
//
// Identities and policies are named by IDs that are never given twice; names are
// labels. The record of an identity names its policies and groups; backlinks lead the
// other way, and change in the same transaction.
//
// A session is its token: nothing is stored of it. It lasts as long as its time, and as
// all that it came from: the access key, the role, the identity provider. Doors ask for
// that with each request (Directory.Credential), the judge asks again for the role in
// the transaction that acts.
//
// sealer.mu and cache.mu are leaves: no transaction runs while one is held.
//
// A policy that cannot be read gives nobody a right: who holds it is refused with
// ErrCorrupt until it is replaced.
//
// Sources: "AWS Identity and Access Management API Reference", "AWS Security Token
// Service API Reference", "IAM and AWS STS
// quotas" and "Policy evaluation logic" of the IAM user guide.
package iam
