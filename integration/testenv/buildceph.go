//go:build ceph

package testenv

// How ogw is built for the tests.
const buildTags, buildCgo = "ceph", "1"
