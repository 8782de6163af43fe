// Package tail keeps commits until Pebble's log has them. Pebble keeps these in
// the memory of the process, and the file tail is in the system's memory, which
// the end of the process does not take. So a relaxed commit is answered. One that is alone is
// made durable by a sync of the tail, which the goroutine that commits does itself.
//
//	commit ── Stamps ─→ the commit's batch sets record.VersionKey
//	       ├─ Append ─→ the half in use; the other one when that is full, once Pebble's
//	       │            log has what it holds
//	       └─ Sync   ─→ durable
//	start  ── Missing ─→ what Pebble lacks, in order, up to the first gap
//
// internal/record has its layout.
package tail
