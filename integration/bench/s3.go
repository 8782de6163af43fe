package main

import (
	"crypto/rand"
	"fmt"
)

var (
	objectSizes   = []int{4 << 10, mib, 64 * mib}
	objectClients = []int{1, 16}
)

// s3Suite measures PUT and GET of objects over S3, all durable.
func s3Suite(e *env) error {
	s, err := startServer(e)
	if err != nil {
		return err
	}
	defer s.stop()
	if _, err := s.client.send(e.ctx, "PUT", s.url("/bench"), nil); err != nil {
		return err
	}
	for _, size := range objectSizes {
		body := make([]byte, size)
		rand.Read(body)
		for _, clients := range objectClients {
			if err := putRow(e, s, body, clients); err != nil {
				return err
			}
		}
		for _, clients := range objectClients {
			if err := getRow(e, s, size, clients); err != nil {
				return err
			}
		}
	}
	return smallReads(e, s)
}

func putRow(e *env, s *server, body []byte, clients int) error {
	size := len(body)
	v, err := e.parallel(clients, func(client, i int) (int, error) {
		return s.client.send(e.ctx, "PUT", s.url(fmt.Sprintf("/bench/%s/%d/%d", sizeName(size), client, i%64)), body)
	})
	if err != nil {
		return err
	}
	r := row{Name: fmt.Sprintf("S3 PUT %s, %d clients", sizeName(size), clients),
		Value: v / float64(size), Unit: "op/s", Note: fmt.Sprintf("%.0f MiB/s", v/mib)}
	if size >= 64*mib {
		cores := float64(min(clients, 2))
		limit := min(e.limits[fmt.Sprintf("disk64M/%d", clients)], cores*e.limits["md5"])
		r.Limit, r.LimitName, r.Target = limit/float64(size), "the lower of disk and MD5", 0.7
	} else {
		r.Limit, r.LimitName = e.limits[fmt.Sprintf("sync%s/%d", sizeName(size), clients)], "a synced file each"
	}
	e.add(r)
	return nil
}

func getRow(e *env, s *server, size, clients int) error {
	sign := true
	url := s.url(fmt.Sprintf("/bench/%s/0/0", sizeName(size)))
	v, err := e.parallel(clients, func(int, int) (int, error) { return s.client.get(e.ctx, url, &sign) })
	if err != nil {
		return err
	}
	r := row{Name: fmt.Sprintf("S3 GET %s, %d clients", sizeName(size), clients),
		Value: v / float64(size), Unit: "op/s", Note: fmt.Sprintf("%.0f MiB/s", v/mib),
		Limit: e.limits[fmt.Sprintf("http%s/%d", sizeName(size), clients)], LimitName: "net/http file server"}
	if size >= 64*mib {
		r.Target = 0.7
	}
	e.add(r)
	return nil
}

// smallReads measures GET and HEAD of 4 KiB with many clients.
func smallReads(e *env, s *server) error {
	sign, url := true, s.url("/bench/4KiB/0/0")
	v, err := e.parallel(64, func(int, int) (int, error) { return s.client.get(e.ctx, url, &sign) })
	if err != nil {
		return err
	}
	e.add(row{Name: "S3 GET 4KiB, 64 clients", Value: v / 4096, Unit: "op/s",
		Limit: e.limits["httpsmall/64"], LimitName: "net/http handler", Target: 0.6})
	v, err = e.parallel(64, func(int, int) (int, error) {
		_, err := s.client.send(e.ctx, "HEAD", url, nil)
		return 1, err
	})
	if err != nil {
		return err
	}
	e.add(row{Name: "S3 HEAD 4KiB, 64 clients", Value: v, Unit: "op/s",
		Limit: e.limits["httpsmall/64"], LimitName: "net/http handler", Target: 0.6})
	return nil
}
