package engines

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"ogw/integration/testenv"
)

// ogw is the program, whose S3 gateway is an endpoint like others.
var ogw string

// parallel is how many of the tests that mostly wait run at the same time, whatever
// the number of processors.
const parallel = 6

func TestMain(m *testing.M) {
	if os.Getenv(fuseHelper) != "" {
		if err := serveFiles(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
		panic(err)
	}
	os.Exit(testenv.Main(m, &ogw))
}
