package integration

import (
	"os"
	"testing"

	"ogw/integration/testenv"
)

// binary is the ogw under test, built once by TestMain.
var binary string

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, &binary)) }

// server is testenv's, with the doors and clients of this suite.
type server struct{ *testenv.Server }

type options = testenv.ServerOptions

// with returns s for a subtest, which then is what fails.
func (s *server) with(t *testing.T) *server { return &server{s.Server.With(t)} }

// newServer starts a server with an S3, a REST and an NFS gateway, and stops
// it when the test ends.
func newServer(t *testing.T, o options) *server {
	t.Helper()
	return &server{testenv.NewServer(t, binary, o)}
}
