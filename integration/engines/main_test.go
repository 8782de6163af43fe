package engines

import (
	"os"
	"testing"

	"ogw/integration/testenv"
)

// ogw is the program, whose S3 gateway is an endpoint like others.
var ogw string

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, &ogw)) }
