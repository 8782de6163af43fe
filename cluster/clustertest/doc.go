// Package clustertest is the conformance suite of package cluster. Every
// engine passes it:
//
//	func TestKV(t *testing.T)    { clustertest.TestKV(t, open) }
//	func TestBlobs(t *testing.T) { clustertest.TestBlobs(t, open) }
//
// and, if the engine can be opened again, TestRestart. The open functions
// return a fresh, empty store each time and close it with t.Cleanup; a second
// Close must be harmless.
package clustertest
