-- A workload in Lua: calls, tables, strings, closures, coroutines, metatables and caught errors.
local rounds = tonumber(arg[1]) or 1

local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end

local function sieve(limit)
  local composite, primes = {}, 0
  for n = 2, limit do
    if not composite[n] then
      primes = primes + 1
      for multiple = n * n, limit, n do composite[multiple] = true end
    end
  end
  return primes
end

local Vector = {}
Vector.__index = Vector
Vector.__add = function(a, b) return setmetatable({ x = a.x + b.x, y = a.y + b.y }, Vector) end
function Vector:dot(other) return self.x * other.x + self.y * other.y end

local function words(text)
  return coroutine.wrap(function()
    for word in text:gmatch("%a+") do coroutine.yield(word:lower()) end
  end)
end

local checksum = 0
for round = 1, rounds do
  checksum = checksum + fib(23) + sieve(40000)
  local sum = setmetatable({ x = 0, y = 0 }, Vector)
  for n = 1, 40000 do sum = sum + setmetatable({ x = n % 7, y = n % 11 }, Vector) end
  checksum = checksum + sum:dot(sum) % 1009
  local counts, order = {}, {}
  for word in words(("Every edge of the Loop is counted, and every block, "):rep(300)) do
    counts[word] = (counts[word] or 0) + 1
  end
  for word in pairs(counts) do order[#order + 1] = word end
  table.sort(order, function(a, b) return counts[a] > counts[b] or counts[a] == counts[b] and a < b end)
  checksum = checksum + #table.concat(order, ",")
  for n = 1, 2000 do
    if not pcall(error, { n }) then checksum = checksum + 1 end
  end
end
print(checksum)
