// Package secrets seals what a store must not keep in clear, if there are cluster
// keys (package seal): those of access keys, in the records of users, and the
// store's own, from which doors derive keys.
//
//	storesecret.go   the store's own: found, made
//	reseal.go        Seal, when a store is opened: all secrets come to the first key
//	recode.go        secrets in backups, sealed with the backup's key
//	clear.go         that secrets in clear were stored, so that they are erased later
//
// A secret that cannot be opened stays as it is stored and lets nobody in; if its
// key comes back, so does the secret. The package has no state and no locks.
package secrets
