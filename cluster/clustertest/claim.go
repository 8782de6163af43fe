package clustertest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"ogw/cluster"
)

// The stores whose blobs are claimed; their numbers mean nothing.
const store, otherStore = 0x1234, 0x8000_0000_0000_0001

// wantClaim claims b and holds the answer to what the contract says of the
// count before, if the engine counts; else the count stays what is known. It
// returns the count now.
func wantClaim(t *testing.T, b cluster.Blobs, known, before uint64) uint64 {
	t.Helper()
	was, now, err := cluster.ClaimBlobs(ctx, b, store, known)
	if _, counts := b.(cluster.Claimer); !counts {
		if err != nil || was != known || now != known {
			t.Fatalf("known %d: claim of what is not counted: %d, %d, %v", known, was, now, err)
		}
		return now
	}
	if err != nil || was != before || now <= max(before, known) {
		t.Fatalf("known %d: claim: before %d, want %d; now %d; %v", known, was, before, now, err)
	}
	return now
}

// wantMismatch claims b for whom it does not belong to.
func wantMismatch(t *testing.T, b cluster.Blobs, store, known uint64) {
	t.Helper()
	if before, now, err := cluster.ClaimBlobs(ctx, b, store, known); !errors.Is(err, cluster.ErrMismatch) {
		t.Errorf("store %x claims what is not its own, known %d: %d, %d, %v", store, known, before, now, err)
	}
}

// testClaim: blobs are of one store, and tell which half is from an earlier
// time. An engine whose halves cannot come apart counts nothing.
func testClaim(t *testing.T, b cluster.Blobs) {
	_, counts := b.(cluster.Claimer)
	if counts {
		wantMismatch(t, b, otherStore, 3) // metadata that know of blobs, and there are none
	}
	id, data := cluster.BlobID{Content: 1}, content(1, 100)
	first := wantClaim(t, b, 0, 0)
	mustPut(t, b, id, data)
	second := wantClaim(t, b, first, first)
	if counts {
		third := wantClaim(t, b, first, second) // the metadata are older
		wantMismatch(t, b, otherStore, 0)
		wantMismatch(t, b, otherStore, third)       // who was refused has changed nothing
		fourth := wantClaim(t, b, third+100, third) // the blobs are older
		wantClaim(t, b, fourth, fourth)
	}
	wantBlob(t, b, id, data)
	if found := list(t, b, cluster.BlobID{}); len(found) != 1 || found[0].ID != id {
		t.Errorf("claims are listed: %v", found)
	}
	if c, counts := b.(cluster.Claimer); counts {
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		if _, _, err := c.Claim(cancelled, store, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("a claim whose caller has given up: %v", err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if _, _, err := c.Claim(ctx, store, 0); !errors.Is(err, cluster.ErrClosed) {
			t.Errorf("a claim after Close: %v", err)
		}
	}
}

// testClaimHandOver: what one client claimed, the other one counts on.
func testClaimHandOver(t *testing.T, a, b cluster.Blobs) {
	known := uint64(0)
	for range 6 {
		known = wantClaim(t, a, known, known)
		wantMismatch(t, b, otherStore, known)
		a, b = b, a
	}
}

// testClaimAtOnce: each claim has a count of its own, greater than all that
// ended before it began.
func testClaimAtOnce(t *testing.T, a, b cluster.Blobs) {
	const each = 6
	var mu sync.Mutex
	var top uint64
	seen := map[uint64]bool{}
	var wg sync.WaitGroup
	for _, b := range []cluster.Blobs{a, b} {
		wg.Go(func() {
			for range each {
				mu.Lock()
				least := top
				mu.Unlock()
				before, now, err := cluster.ClaimBlobs(ctx, b, store, 0)
				mu.Lock()
				if err != nil || before < least || now <= before || seen[now] {
					t.Errorf("claim: before %d, now %d, seen %v, after %d; %v", before, now, seen[now], least, err)
				}
				seen[now], top = true, max(top, now)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// testClaimOfTwoStores: one of them has the blobs.
func testClaimOfTwoStores(t *testing.T, a, b cluster.Blobs) {
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, b := range []cluster.Blobs{a, b} {
		wg.Go(func() { _, _, errs[i] = cluster.ClaimBlobs(ctx, b, []uint64{store, otherStore}[i], 0) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, cluster.ErrMismatch) {
			t.Errorf("two stores claim at once: %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d stores have the blobs: %v", won, errs)
	}
}
