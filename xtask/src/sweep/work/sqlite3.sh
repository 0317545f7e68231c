sqlite3 numbers.db <<'SQL'
PRAGMA journal_mode = WAL;
CREATE TABLE numbers(id INTEGER PRIMARY KEY, remainder INT, name TEXT, half REAL);
WITH RECURSIVE count(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM count WHERE i < 40000)
    INSERT INTO numbers SELECT i, (i * 7561) % 4099, printf('n%06x', (i * 131) % 9001), i / 2.0 FROM count;
CREATE INDEX by_remainder ON numbers(remainder);
CREATE INDEX by_name ON numbers(name, half);
SELECT remainder % 13 AS class, count(*), avg(half), min(name) FROM numbers GROUP BY class ORDER BY class;
SELECT count(*) FROM numbers a JOIN numbers b USING (remainder) WHERE a.id < 5000 AND b.id > 30000;
SELECT name, sum(half) OVER (PARTITION BY remainder % 5 ORDER BY id) AS total FROM numbers ORDER BY total DESC LIMIT 7;
BEGIN; DELETE FROM numbers WHERE name LIKE '%a%'; SELECT changes(); ROLLBACK;
UPDATE numbers SET name = upper(name) WHERE remainder % 3 = 1; SELECT changes();
SELECT json_group_array(json_object('id', id, 'name', name)) FROM numbers WHERE id % 5003 = 1;
PRAGMA integrity_check;
SQL
sqlite3 numbers.db .dump | sha256sum
sqlite3 numbers.db 'SELECT nothing FROM nowhere' || echo "status $?"
