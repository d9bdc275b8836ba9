--= ozencb/postgresql-exercises README.md (pgexercises.com)
select facid, sum(slots) as "Total Slots"
	from cd.bookings
	where
		starttime >= '2012-09-01'
		and starttime < '2012-10-01'
	group by facid
order by sum(slots);
--~ select facid, sum(slots) as "Total Slots"
--~ from bookings
--~ where
--~ starttime >= '2012-09-01'
--~ and starttime < '2012-10-01'
--~ group by facid
--~ order by sum(slots)

select facid, extract(month from starttime) as month, sum(slots) as "Total Slots"
	from cd.bookings
	where
		starttime >= '2012-01-01'
		and starttime < '2013-01-01'
	group by facid, month
order by facid, month;
--~ select facid, extract(month from starttime) as month, sum(slots) as "Total Slots"
--~ from bookings
--~ where
--~ starttime >= '2012-01-01'
--~ and starttime < '2013-01-01'
--~ group by facid, month
--~ order by facid, month

select count(*) from
	(select distinct memid from cd.bookings) as mems
--~ select count(*) from
--~ (select distinct memid from bookings) as mems

select facid, sum(slots) as "Total Slots"
        from cd.bookings
        group by facid
        having sum(slots) > 1000
        order by facid
--~ select facid, sum(slots) as "Total Slots"
--~ from bookings
--~ group by facid
--~ having sum(slots) > 1000
--~ order by facid

select facs.name, sum(slots * case
			when memid = 0 then facs.guestcost
			else facs.membercost
		end) as revenue
	from cd.bookings bks
	inner join cd.facilities facs
		on bks.facid = facs.facid
	group by facs.name
order by revenue;
--~ select facs.name, sum(slots * case
--~ when memid = 0 then facs.guestcost
--~ else facs.membercost
--~ end) as revenue
--~ from bookings bks
--~ inner join facilities facs
--~ on bks.facid = facs.facid
--~ group by facs.name
--~ order by revenue

select name, revenue from (
	select facs.name, sum(case
				when memid = 0 then slots * facs.guestcost
				else slots * membercost
			end) as revenue
		from cd.bookings bks
		inner join cd.facilities facs
			on bks.facid = facs.facid
		group by facs.name
	) as agg where revenue < 1000
order by revenue;
--~ select name, revenue from (
--~ select facs.name, sum(case
--~ when memid = 0 then slots * facs.guestcost
--~ else slots * membercost
--~ end) as revenue
--~ from bookings bks
--~ inner join facilities facs
--~ on bks.facid = facs.facid
--~ group by facs.name
--~ ) as agg where revenue < 1000
--~ order by revenue

with sum as (select facid, sum(slots) as totalslots
	from cd.bookings
	group by facid
)
select facid, totalslots
	from sum
	where totalslots = (select max(totalslots) from sum);
--~ with sum as (select facid, sum(slots) as totalslots
--~ from bookings
--~ group by facid
--~ )
--~ select facid, totalslots
--~ from sum
--~ where totalslots = (select max(totalslots) from sum)

select facid, extract(month from starttime) as month, sum(slots) as slots
	from cd.bookings
	where
		starttime >= '2012-01-01'
		and starttime < '2013-01-01'
	group by rollup(facid, month)
order by facid, month;
--~ select facid, extract(month from starttime) as month, sum(slots) as slots
--~ from bookings
--~ where
--~ starttime >= '2012-01-01'
--~ and starttime < '2013-01-01'
--~ group by rollup(facid, month)
--~ order by facid, month

with bookings as (
	select facid, extract(month from starttime) as month, slots
	from cd.bookings
	where
		starttime >= '2012-01-01'
		and starttime < '2013-01-01'
)
select facid, month, sum(slots) from bookings group by facid, month
union all
select facid, null, sum(slots) from bookings group by facid
union all
select null, null, sum(slots) from bookings
order by facid, month;
--~ with bookings as (
--~ select facid, extract(month from starttime) as month, slots
--~ from bookings
--~ where
--~ starttime >= '2012-01-01'
--~ and starttime < '2013-01-01'
--~ )
--~ select facid, month, sum(slots) from bookings group by facid, month
--~ union all
--~ select facid, null, sum(slots) from bookings group by facid
--~ union all
--~ select null, null, sum(slots) from bookings
--~ order by facid, month

--: refused syntax, missing: TO_CHAR of a number
select facs.facid, facs.name,
	trim(to_char(sum(bks.slots)/2.0, '9999999999999999D99')) as "Total Hours"
	from cd.bookings bks
	inner join cd.facilities facs
		on facs.facid = bks.facid
	group by facs.facid, facs.name
order by facs.facid;
--~ select facs.facid, facs.name, printf('%.2f', sum(bks.slots)/2.0) from bookings bks join facilities facs on facs.facid = bks.facid group by 1, 2 order by 1

select facid, total from (
	select facid, sum(slots) total, rank() over (order by sum(slots) desc) rank
        	from cd.bookings
		group by facid
	) as ranked
	where rank = 1
--~ select facid, total from (
--~ select facid, sum(slots) total, rank() over (order by sum(slots) desc) rank
--~ from bookings
--~ group by facid
--~ ) as ranked
--~ where rank = 1

select name, rank from (
	select facs.name as name, rank() over (order by sum(case
				when memid = 0 then slots * facs.guestcost
				else slots * membercost
			end) desc) as rank
		from cd.bookings bks
		inner join cd.facilities facs
			on bks.facid = facs.facid
		group by facs.name
	) as subq
	where rank <= 3
order by rank;
--~ select name, rank from (
--~ select facs.name as name, rank() over (order by sum(case
--~ when memid = 0 then slots * facs.guestcost
--~ else slots * membercost
--~ end) desc) as rank
--~ from bookings bks
--~ inner join facilities facs
--~ on bks.facid = facs.facid
--~ group by facs.name
--~ ) as subq
--~ where rank <= 3
--~ order by rank

select name, case when class=1 then 'high'
		when class=2 then 'average'
		else 'low'
		end revenue
	from (
		select facs.name as name, ntile(3) over (order by sum(case
				when memid = 0 then slots * facs.guestcost
				else slots * membercost
			end) desc) as class
		from cd.bookings bks
		inner join cd.facilities facs
			on bks.facid = facs.facid
		group by facs.name
	) as subq
order by class, name;
--~ select name, case when class=1 then 'high'
--~ when class=2 then 'average'
--~ else 'low'
--~ end revenue
--~ from (
--~ select facs.name as name, ntile(3) over (order by sum(case
--~ when memid = 0 then slots * facs.guestcost
--~ else slots * membercost
--~ end) desc) as class
--~ from bookings bks
--~ inner join facilities facs
--~ on bks.facid = facs.facid
--~ group by facs.name
--~ ) as subq
--~ order by class, name

select 	facs.name as name,
	facs.initialoutlay/((sum(case
			when memid = 0 then slots * facs.guestcost
			else slots * membercost
		end)/3) - facs.monthlymaintenance) as months
	from cd.bookings bks
	inner join cd.facilities facs
		on bks.facid = facs.facid
	group by facs.facid
order by name;
--~ select facs.name, facs.initialoutlay/((sum(case when memid = 0 then slots * facs.guestcost else slots * membercost end)/3) - facs.monthlymaintenance)
--~ from bookings bks join facilities facs on bks.facid = facs.facid group by facs.facid, facs.name, facs.initialoutlay, facs.monthlymaintenance order by 1

select name, month,
round((100*slots)/
cast(
25*(cast((month + interval '1 month') as date)
- cast (month as date)) as numeric),1) as utilisation
from  (
select facs.name as name, date_trunc('month', starttime) as month, sum(slots) as slots
from cd.bookings bks
inner join cd.facilities facs
on bks.facid = facs.facid
group by facs.facid, facs.name, month
) as inn
order by name, month
--~ select name, month,
--~ round((100*slots)/
--~ cast(
--~ 25*(cast((month + interval '1 month') as date)
--~ - cast (month as date)) as numeric),1) as utilisation
--~ from  (
--~ select facs.name as name, date_trunc('month', starttime) as month, sum(slots) as slots
--~ from bookings bks
--~ inner join facilities facs
--~ on bks.facid = facs.facid
--~ group by facs.facid, facs.name, month
--~ ) as inn
--~ order by name, month

--: refused syntax
select mems.surname, mems.firstname, mems.memid, min(bks.starttime) as starttime
	from cd.bookings bks
	inner join cd.members mems on
		mems.memid = bks.memid
	where starttime >= '2012-09-01'
	group by mems.surname, mems.firstname, mems.memid
order by mems.memid;
