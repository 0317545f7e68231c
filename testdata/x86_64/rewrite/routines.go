// Goroutines, channels, maps, closures, defer and recover, a growing stack, garbage collection, a type switch, signals.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sort"
	"strings"
	"sync"
	"syscall"
)

type shape interface{ area() int }
type square struct{ side int }
type rectangle struct{ width, height int }

func (s square) area() int     { return s.side * s.side }
func (r *rectangle) area() int { return r.width * r.height }

func deep(n int) int {
	var room [64]int
	if n == 0 {
		return 0
	}
	room[n%64] = n
	return deep(n-1) + room[n%64] - n + 1
}

func risky(n int) (result string) {
	defer func() {
		if problem := recover(); problem != nil {
			result = fmt.Sprint("recovered: ", problem)
		}
	}()
	var numbers []int
	var nothing *rectangle
	switch n {
	case 0:
		return fmt.Sprint(numbers[n])
	case 1:
		return fmt.Sprint(nothing.area())
	case 2:
		return fmt.Sprint(7 / (n - 2))
	case 3:
		panic(errors.New("own"))
	}
	return "fine"
}

func main() {
	results := make(chan int)
	var group sync.WaitGroup
	for worker := 0; worker < 8; worker++ {
		group.Add(1)
		go func(worker int) {
			defer group.Done()
			sum := 0
			for n := 0; n < 20000; n++ {
				sum += n % (worker + 2)
			}
			results <- sum
		}(worker)
	}
	go func() { group.Wait(); close(results) }()
	total := 0
	for sum := range results {
		total += sum
	}
	fmt.Println("sum", total, "deep", deep(100000))
	words := map[string]int{}
	for _, word := range strings.Fields(strings.Repeat("every edge of every loop ", 500)) {
		words[word]++
	}
	var names []string
	for name := range words {
		names = append(names, name)
	}
	sort.Slice(names, func(a, b int) bool {
		return words[names[a]] > words[names[b]] || words[names[a]] == words[names[b]] && names[a] < names[b]
	})
	fmt.Println(names, words)
	area := 0
	var garbage [][]byte
	for n := 0; n < 2000; n++ {
		var s shape = square{n % 5}
		if n%2 == 0 {
			s = &rectangle{n % 3, n % 7}
		}
		area += s.area()
		if garbage = append(garbage, make([]byte, 4096)); len(garbage) > 100 {
			garbage = nil
		}
	}
	runtime.GC()
	fmt.Println("area", area)
	for n := 0; n < 5; n++ {
		fmt.Println(risky(n))
	}
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGUSR1)
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	fmt.Println(<-caught)
	if len(os.Args) > 1 {
		panic("the end")
	}
	os.Exit(total % 7)
}
