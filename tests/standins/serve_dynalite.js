// Serves dynalite from memory on a free port of 127.0.0.1 and prints the port. dynalite's own command cannot do that:
// it takes port 0 for "not given". Ends with its standard input, so that a killed test run leaves nothing behind.
'use strict'

const dynalite = require(process.argv[2])
const server = dynalite({ createTableMs: 1, deleteTableMs: 1, updateTableMs: 1 })

server.listen(0, '127.0.0.1', () => console.log(server.address().port))
process.stdin.on('end', () => process.exit(0)).resume()
