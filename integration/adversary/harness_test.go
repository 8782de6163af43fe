package adversary

import (
	"fmt"
	"os"
	"testing"

	"ogw/integration/testenv"
)

// binary is the ogw under attack, built once by TestMain.
var binary string

func TestMain(m *testing.M) {
	if text := os.Getenv(floodVariable); text != "" {
		if err := floodFrom(text); err != nil {
			fmt.Fprintln(os.Stderr, "attackers:", err)
			os.Exit(1)
		}
		return
	}
	if path := os.Getenv(callVariable); path != "" {
		fmt.Println(callSocket(path))
		return
	}
	// The servers take four times of what they use before they collect garbage, which on a busy
	// machine showed as what an attack had them keep.
	_ = os.Setenv("GOGC", "100")
	os.Exit(testenv.Main(m, &binary))
}

// newServer starts a server with an S3, a REST and an NFS gateway, and stops
// it when the test ends.
func newServer(t *testing.T, o testenv.ServerOptions) *testenv.Server {
	t.Helper()
	return testenv.NewServer(t, binary, o)
}
