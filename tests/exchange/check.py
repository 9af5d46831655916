"""Two published clients against the simulated exchange, which must be able to parse its answers.

    python check.py http://127.0.0.1:9443 ws://127.0.0.1:9443 [key secret]

Exits non-zero on the first thing that is not as a client of the real exchange expects it. With a key that owns
USDT an order is placed and cancelled too.
"""

import asyncio
import sys
from decimal import Decimal

import ccxt
from binance import AsyncClient, BinanceSocketManager
from binance.exceptions import BinanceAPIException

PATIENCE = 15


def check(condition, what):
    if not condition:
        raise SystemExit(f"not as expected: {what}")
    print(f"ok: {what}")


async def binance_rest(client):
    check(await client.ping() == {}, "ping")
    check((await client.get_server_time())["serverTime"] > 0, "time")
    info = await client.get_exchange_info()
    names = {symbol["symbol"] for symbol in info["symbols"]}
    check({"BTCUSDT", "ETHBTC"} <= names, "exchange info lists symbols")
    one = await client.get_symbol_info("BTCUSDT")
    check(any(f["filterType"] == "LOT_SIZE" for f in one["filters"]), "filters")
    depth = await client.get_order_book(symbol="BTCUSDT", limit=100)
    check(Decimal(depth["bids"][0][0]) < Decimal(depth["asks"][0][0]), "depth is not crossed")
    klines = await client.get_klines(symbol="BTCUSDT", interval="1h", limit=24)
    check(len(klines) == 24 and all(len(row) == 12 for row in klines), "klines")
    history = await client.get_historical_klines("BTCUSDT", "1m", "1 day ago UTC")
    opens = [row[0] for row in history]
    check(len(opens) > 1400 and opens == sorted(set(opens)), "a day of minutes, page by page")
    ticker = await client.get_ticker(symbol="BTCUSDT")
    check(Decimal(ticker["lowPrice"]) <= Decimal(ticker["lastPrice"]) <= Decimal(ticker["highPrice"]), "24 h ticker")
    check(len(await client.get_all_tickers()) == len(names), "all prices")
    check(len(await client.get_recent_trades(symbol="BTCUSDT", limit=10)) == 10, "trades")
    check(len(await client.get_aggregate_trades(symbol="BTCUSDT", limit=10)) == 10, "aggregate trades")
    try:
        await client.get_order_book(symbol="NOSUCH")
    except BinanceAPIException as error:
        check(error.code == -1121 and error.status_code == 400, "an unknown symbol is an error")
    else:
        raise SystemExit("an unknown symbol was answered")


async def binance_streams(client, streams):
    manager = BinanceSocketManager(client)
    manager.STREAM_URL = streams + "/"
    names = ["btcusdt@depth@100ms", "btcusdt@trade", "btcusdt@bookTicker", "btcusdt@kline_1m", "!miniTicker@arr"]
    heard, last = set(), None
    async with manager.multiplex_socket(names) as socket:
        while heard != set(names):
            message = await asyncio.wait_for(socket.recv(), PATIENCE)
            heard.add(message["stream"])
            if message["stream"] == names[0]:
                diff = message["data"]
                if last is not None and diff["U"] != last + 1:
                    raise SystemExit(f"a gap before diff {diff['U']}")
                last = diff["u"]
    check(True, "every stream was heard, and diffs follow one another")


async def binance_orders(client):
    account = await client.get_account()
    check(account["canTrade"], "account")
    await client.create_test_order(symbol="BTCUSDT", side="BUY", type="MARKET", quantity="0.001")
    order = await client.order_limit_buy(symbol="BTCUSDT", quantity="0.001", price="30000.00")
    check(order["status"] == "NEW", "a limit order rests")
    check(len(await client.get_open_orders(symbol="BTCUSDT")) == 1, "open orders")
    cancelled = await client.cancel_order(symbol="BTCUSDT", orderId=order["orderId"])
    check(cancelled["status"] == "CANCELED", "it is cancelled")
    bought = await client.order_market_buy(symbol="BTCUSDT", quantity="0.001")
    check(bought["status"] == "FILLED" and bought["fills"], "a market order is filled")
    check(await client.get_my_trades(symbol="BTCUSDT"), "my trades")


def ccxt_rest(rest):
    exchange = ccxt.binance({"enableRateLimit": False, "options": {"defaultType": "spot", "fetchMarkets": {"types": ["spot"]}}})
    for name in ("public", "private"):
        exchange.urls["api"][name] = rest + "/api/v3"
    exchange.urls["api"]["v1"] = rest + "/api/v1"
    markets = exchange.load_markets()
    check(markets["BTC/USDT"]["precision"]["price"] == 0.01, "ccxt: the tick size")
    check(not markets["LUNA/USDT"]["active"], "ccxt: a delisted symbol is not active")
    book = exchange.fetch_order_book("BTC/USDT", limit=20)
    check(book["nonce"] and book["bids"][0][0] < book["asks"][0][0], "ccxt: the book")
    check(exchange.fetch_ticker("ETH/BTC")["last"] > 0, "ccxt: the ticker")
    check(len(exchange.fetch_ohlcv("BTC/USDT", "5m", limit=50)) == 50, "ccxt: candles")
    check(len(exchange.fetch_trades("BTC/USDT", limit=20)) == 20, "ccxt: trades")
    try:
        exchange.public_get_depth({"symbol": "NOSUCH"})
    except ccxt.BadSymbol:
        check(True, "ccxt: an unknown symbol is a BadSymbol")


async def main(rest, streams, credentials):
    AsyncClient.API_URL = rest + "/api"
    client = AsyncClient(*credentials)
    client.API_URL = rest + "/api"
    try:
        await binance_rest(client)
        await binance_streams(client, streams)
        if credentials:
            await binance_orders(client)
    finally:
        await client.close_connection()
    await asyncio.to_thread(ccxt_rest, rest)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 5):
        raise SystemExit(__doc__)
    asyncio.run(main(sys.argv[1].rstrip("/"), sys.argv[2].rstrip("/"), sys.argv[3:]))
