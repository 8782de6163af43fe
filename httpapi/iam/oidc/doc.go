// Package oidc verifies web identities: tokens that an OpenID Connect provider signed.
//
//	token ─ issuer, unverified ─→ provider of the store, or refused
//	      ─→ issuer (discovery document, keys)   issuer.go    cached, fetched with bounds
//	      ─→ signature, issuer, audience, time   verifier.go  go-oidc
//
// # Invariants
//
// Nothing is fetched for an issuer that the store does not list. What is fetched comes
// by https, from a certificate that the system or a fingerprint of the provider
// vouches for, without redirects, maxDocument bytes of it, and each document once in
// fetchPause: callers that come in the meantime wait for the next fetch and share it. Keys are asked
// for again when a token names one that is not known, and after maxAge.
//
// Verifier.mu is a leaf: nothing is fetched while it is held.
//
// Sources: OpenID Connect Core 1.0, section 3.1.3.7; OpenID Connect Discovery 1.0.
package oidc
