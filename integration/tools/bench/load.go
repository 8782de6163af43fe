package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// parallel runs fn in clients goroutines for the span and returns how often
// it ended per second. Operations that begin within the span count with all
// of their time.
func (e *env) parallel(clients int, span time.Duration, fn func(client, i int) error) (float64, error) {
	var (
		total atomic.Int64
		wg    sync.WaitGroup
		once  sync.Once
		first error
	)
	start := time.Now()
	deadline := start.Add(span)
	for c := range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; time.Now().Before(deadline) && e.ctx.Err() == nil; i++ {
				if err := fn(c, i); err != nil {
					once.Do(func() { first = err })
					return
				}
				total.Add(1)
			}
		}()
	}
	wg.Wait()
	return float64(total.Load()) / time.Since(start).Seconds(), first
}

// target is a server.
type target struct {
	addr string
	pid  int
}

// httpLoad is a gauge of HTTP requests: client c sends requests(c) in turn,
// over a connection of its own that lasts for the whole row.
func (e *env) httpLoad(name string, to target, clients int, requests func(client int) []rawRequest) (gauge, func(), error) {
	conns := make([]*rawConn, clients)
	lists := make([][]rawRequest, clients)
	done := func() {
		for _, c := range conns {
			if c != nil {
				c.close()
			}
		}
	}
	for i := range lists {
		lists[i] = requests(i)
	}
	return gauge{name: name, pid: to.pid, run: func(span time.Duration) (float64, error) {
		return e.parallel(clients, span, func(c, i int) (err error) {
			// Not before: servers close connections that ask for nothing.
			if conns[c] == nil {
				if conns[c], err = dialRaw(e.ctx, to.addr); err != nil {
					return err
				}
			}
			return conns[c].do(&lists[c][i%len(lists[c])], nil)
		})
	}}, done, nil
}
