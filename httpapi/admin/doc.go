// Package admin is the operator's door: a versioned JSON API over HTTP, and
// the client that the commands use.
//
//	ogw COMMAND ── Client ─┬─ Unix socket in the data folder ─┐
//	Prometheus, probes ────┼─ TCP with a token ───────────────┼─ Server ── vfs
//	                       └─ Local: no process is running ───┘    └───── Process
//
// The client always speaks HTTP. When no process serves the data folder, the
// command opens the cluster itself and hands the requests to a Server in its
// own process, so that there is one code path.
//
//	GET    /v1/status                      what runs
//	GET    /v1/gateways                    the listeners
//	GET    /v1/mounts                      the FUSE mounts of the process
//	POST   /v1/mounts                      {"dir": …} mount
//	DELETE /v1/mounts?dir=&lazy=           unmount
//	GET    /v1/whereis?path=               who holds the bytes of an object
//	POST   /v1/purge                       {"path": …} drop from the caches of all gateways
//	POST   /v1/check                       {"repair": …, "data": …}
//	GET    /v1/users                       all users, without secrets
//	POST   /v1/users                       add; the answer holds the secret
//	DELETE /v1/users/NAME
//	POST   /v1/users/NAME/rename           {"name": …}
//	POST   /v1/users/NAME/rotate           new keys; the answer holds the secret
//	POST   /v1/users/NAME/keys             a further key; the answer holds the secret
//	DELETE /v1/users/NAME/keys/KEY
//	GET    /v1/roles                       all roles
//	POST   /v1/roles                       {"name": …, "trust": …} add
//	GET    /v1/roles/NAME
//	PUT    /v1/roles/NAME/trust            {"trust": …} who may assume it
//	POST   /v1/roles/NAME/revoke           end the sessions that were begun before now
//	DELETE /v1/roles/NAME
//	GET    /v1/groups                      all groups and their users
//	POST   /v1/groups                      {"name": …} add
//	DELETE /v1/groups/NAME
//	PUT    /v1/groups/NAME/users/USER      DELETE takes the user out
//	GET    /v1/policies                    all managed policies
//	GET    /v1/policies/NAME
//	PUT    /v1/policies/NAME               {"document": …} add, or another version in force
//	DELETE /v1/policies/NAME
//	PUT    /v1/policies/NAME/on/KIND/NAME  attach to a user, group or role; DELETE detaches
//	POST   /v1/simulate                    {"action": …, "resource": …} who may do that, and why
//	GET    /v1/buckets
//	POST   /v1/buckets                     add
//	DELETE /v1/buckets/NAME
//	GET    /v1/buckets/NAME/usage
//	GET    /v1/exports                     what NFS clients may mount
//	POST   /v1/exports                     add; the answer holds the secret
//	DELETE /v1/exports/ID                  revoke
//	GET    /v1/locks?path=&client=         who holds locks, who waits for them
//	POST   /v1/locks/free                  {"client": …, "force": …} end those of an NFS client
//	GET    /v1/quarantine                  damaged blobs, the files that use them
//	POST   /v1/quarantine/release          {"blobs": [ID…]} or {"all": true} delete those without files
//	POST   /v1/backups                     hold an instant: {"keys": …, "drop_secrets": …}
//	POST   /v1/backups/ID/use              {"from": BLOB} go on holding it, from a blob on
//	GET    /v1/backups/ID/pairs            its metadata, as a stream
//	POST   /v1/backups/ID/blobs            {"blobs": […]} some of its blobs, as a stream
//	DELETE /v1/backups/ID                  let it go
//	POST   /v1/stop                        drain and stop
//	GET    /metrics /healthz /readyz
//	GET    /debug/pprof/NAME               profiles of the process (net/http/pprof)
//
// Errors have the body of package apierr. Changes within /v1 only add.
package admin
