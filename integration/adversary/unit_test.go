package adversary

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"ogw/integration/testenv"
)

// maxExposure is what systemd-analyze may find, in tenths: 3.0 of 10.
const maxExposure = "30"

// The hardened unit leaves an attacker who got into the process little of the
// machine. Without systemd-analyze there is nobody to judge.
func TestUnitExposure(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip(err)
	}
	const unit = "../../docs/systemd/ogw-hardened.service"
	env := []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	out, err := testenv.Output("", env, "systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold="+maxExposure, unit)
	if err != nil || !strings.Contains(out, "Overall exposure level for ogw-hardened.service") {
		t.Errorf("%v\n%s", err, out)
	}
	// The threshold does judge: a unit without any confinement is over it.
	bare := t.TempDir() + "/bare.service"
	if err := os.WriteFile(bare, []byte("[Service]\nExecStart=/bin/true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := testenv.Output("", env, "systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold="+maxExposure, bare); err == nil {
		t.Errorf("a unit without confinement passes:\n%s", out)
	}
}
