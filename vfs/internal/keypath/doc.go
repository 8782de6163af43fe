// Package keypath splits the names of buckets, objects and uploads, and walks them
// in a snapshot: from a key to the entries of the directories on its way (Locate),
// from an upload's ID to its record. It asks nobody's rights.
package keypath
