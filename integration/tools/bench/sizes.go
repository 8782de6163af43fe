package main

import "fmt"

const (
	kib        = 1 << 10
	mib        = 1 << 20
	smallBytes = 4 * kib
	largeBytes = 64 * mib
)

func sizeName(n int) string {
	if n >= mib {
		return fmt.Sprintf("%dMiB", n/mib)
	}
	return fmt.Sprintf("%dKiB", n>>10)
}
