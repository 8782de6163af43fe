package fusemount

import "fmt"

// LockPrefix is how the names of mounts begin among all that lock files.
const LockPrefix = "fuse:"

// lockClient is such a name, which no other mount has at any gateway.
func lockClient(number uint64) string { return fmt.Sprintf("%s%016x", LockPrefix, number) }
