package changeclock

import "testing"

// A change that began, or ended, after the stamp counts.
func TestChangeClock(t *testing.T) {
	var c Clock
	stamp := c.now.Load()
	if !c.Quiet(7, stamp) {
		t.Error("not quiet at first")
	}
	c.begin(7)
	c.begin(7)
	c.end(7)
	if during := c.now.Load(); c.Quiet(7, stamp) || c.Quiet(7, during) {
		t.Error("quiet while a change is under way")
	}
	late := c.now.Load()
	c.end(7)
	if c.Quiet(7, stamp) || c.Quiet(7, late) {
		t.Error("a change is forgotten")
	}
	if !c.Quiet(7, c.now.Load()) || !c.Quiet(8, stamp) {
		t.Error("not quiet after the change, or in another slot")
	}
}
