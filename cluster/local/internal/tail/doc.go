// Package tail keeps relaxed commits until the log has them. Pebble keeps these in
// the memory of the process, and the file tail is in the system's memory, which
// the end of the process does not take. It is never synced.
//
//	commit ── Stamps ─→ the commit's batch sets record.VersionKey
//	       └─ Append ─→ the half in use; the other one when that is full, once
//	                    what it holds is durable
//	start  ── Missing ─→ what Pebble lacks, in order, up to the first gap
//
// internal/record has its layout.
package tail
