//go:build !ceph

package testenv

// How ogw is built for the tests.
const buildTags, buildCgo = "", "0"
